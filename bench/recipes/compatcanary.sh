# CompatCanary, a scanner for OpenAI's API, asks `ragcache serve` over the demo corpus. Takes npm, and port 8765.
ragcache ingest ragcache/bundled/corpus/projects --model smollm2-tuned --index runs/compatcanary
ragcache serve --index runs/compatcanary --name asked --port 8765 &
trap "kill $!" EXIT
until curl --silent --fail http://127.0.0.1:8765/ready; do kill -0 $! && sleep 1; done
npx --yes compatcanary@0.2.2 scan --base-url http://127.0.0.1:8765/v1 --model asked --api-key none --timeout 300 \
    --fail-on never --format json --output docs/benchmarks/compatcanary.json
