"""The same as `program`, for the launcher of `RARE_PROGRAMS`, which knows their commands by this name."""

from service.engine.jailed.program import main

if __name__ == "__main__":
    main()
