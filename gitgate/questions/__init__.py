"""Questions: the types, the grammar of answers, forms, and how a question or an outcome is read and told. Pure."""
