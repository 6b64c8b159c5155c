"""Spark's Python daemon, which forks a worker for each task that finds no idle one.

Java starts it with the first task, and its imports take a second. So the processor starts, beside Java, a process that
imports everything and waits. The daemon that Java starts passes its files and environment on, and that process serves.

    __main__   the program that Java starts
    prepared   the process that waits, and how it takes a daemon's place
    serving    loads and compiles the application, and forks workers
"""
