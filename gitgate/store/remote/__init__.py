"""Store: other repositories: what is fetched from them and pushed to them."""
