"""Documentation: what is rendered from the code, so that it cannot say anything else."""
