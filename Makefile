# What is not `go test`: measuring. See docs/benchmarks.md.

.PHONY: bench bench-compare bench-micro bench-stat

# Races baton against the least that such a frontend could be; some minutes.
bench:
	go run ./test/bench

# The same beside other gateways, which are installed into a cache folder; at
# most 20 minutes. PEERS=nginx,haproxy picks, FLAGS=-quick is two minutes.
bench-compare:
	go run ./test/bench -compare -peers '$(PEERS)' $(FLAGS)

# What each stage costs per token or per request; BENCH narrows it down.
BENCH ?= .
bench-micro:
	go test -run '^$$' -bench '$(BENCH)' -benchmem ./...

# The same of two commits, in turns: make bench-stat OLD=main~5 [NEW=main] [BENCH=Token].
# NEW is the work tree, if it is not given.
bench-stat:
	BENCH='$(BENCH)' test/bench/stat.sh '$(OLD)' $(NEW)
