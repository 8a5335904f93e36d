"""Names of older TensorFlow, for programs that were written with them."""
