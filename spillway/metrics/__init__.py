"""What a run shows while it runs, as Prometheus reads it: the text, a file that is rewritten, an HTTP end point."""
