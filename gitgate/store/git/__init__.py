"""Store: git itself: its processes, objects, refs, configuration and signatures."""
