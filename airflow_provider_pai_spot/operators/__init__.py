"""The operator: what a DAG author types."""
