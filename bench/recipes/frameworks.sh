# Time to first token through LangChain's and LlamaIndex's classes, before and after.
python bench/studies/frameworks.py --out docs/benchmarks/frameworks.json
