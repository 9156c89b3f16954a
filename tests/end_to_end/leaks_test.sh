# The rule by which a soak finds leaks (`make soak`), on stored series: what leaks is found, what only settles is not.
exec python3 tests/faults/leaks_test.py
