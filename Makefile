# What is not `go test`: measuring. See docs/benchmarks.md.

.PHONY: bench bench-micro

# Races baton against the least that such a frontend could be; some minutes.
bench:
	go run ./test/bench

# What each stage costs per token or per request; BENCH narrows it down.
BENCH ?= .
bench-micro:
	go test -run '^$$' -bench '$(BENCH)' -benchmem ./...
