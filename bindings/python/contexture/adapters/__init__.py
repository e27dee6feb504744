"""Adapters for frameworks. Each is a module of its own, and needs its framework only when it is imported.

All of them use places whose result is sent and not kept: the framework keeps the whole history, and the folder
remembers what it has folded. Where there is only a place whose result is kept, the adapter keeps the history.
"""
