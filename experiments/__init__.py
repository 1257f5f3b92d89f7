"""One script per figure or claim; public imports only."""
