"""What the engine sends of its own accord.

Law: only `wire.py` is here; it is a package so that the file may have the name that protobuf messages are allowed in.
"""
