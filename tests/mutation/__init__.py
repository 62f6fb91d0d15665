"""
Breaks the guards on purpose, one small change at a time, and sees whether a test notices (`make mutate`).

A change that no test notices is a guard that could be lost without anybody seeing it.
"""
