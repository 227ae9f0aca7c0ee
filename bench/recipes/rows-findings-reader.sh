# What single choices are worth.
ragcache bench findings --only e,f,g,h,i,j --fusion-tasks sections,pronouns,labels,units \
    --tasks sections,pronouns,labels,units,facts,needles,twohop,tracking,exceptions,corpus-section --n 50 --seed 7 \
    --workers 2 --out docs/benchmarks/rows-findings-reader.json
