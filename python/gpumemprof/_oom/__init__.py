"""What is kept when memory runs out."""
