"""Data sets of tool use: conversations with calls of tools, and queries with the calls that are right.

file, or hub:...  ->  formats.py (a table: detect, read)  ->  Conversation
Conversation  ->  plans.py, recorded_pool.py  ->  a pool of recorded tools, and tasks with reference plans
Conversation  ->  trainer/demonstrations/foreign_lessons.py  ->  lessons for SFT
"""
