"""Surfaces: the pull request. A question is a comment there, a reply is the answer; GitHub first, other forges by one seam."""
