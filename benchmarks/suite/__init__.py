"""The side of the benchmarks that starts drivers and judges their figures."""
