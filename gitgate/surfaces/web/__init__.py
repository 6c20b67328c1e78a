"""Surfaces: `git gate serve --desk`: what waits, as pages for a browser and a phone. GET shows; only a POST from a page of ours
answers, by the same act as `git gate respond`.
"""
