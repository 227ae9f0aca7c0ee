# How often the host waits for the device, row by row, at 8 and 32 layers. A minute, without a GPU.
python bench/studies/host_waits.py --out docs/benchmarks/host-waits.json
