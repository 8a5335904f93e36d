"""Processes that run one system on the common workload, in turns."""
