"""What can be known about the kernels with no GPU.

    interpreter   the numbers that a GPU gives, from Triton's interpreter
    memory        stray addresses, races, elements stored twice or never
    compiled      the binary that a GPU would run, and its registers, spills and shared memory
    sass          its innermost loops, and what a trip costs

The first two need TRITON_INTERPRET=1, the last two need it unset: a process either interprets kernels or compiles them.
"""
