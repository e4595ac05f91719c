"""Which command fits, what it promises and what to expect from it: a few questions, answered from one table.

    advice = tacit.guide("tickets.csv", protect="text", seen_by="curator", purpose="share")
    advice.config      # the options of the job that is recommended; `tacit.run` runs it
    print(advice)

Of a private file only the names of its columns and the number of its rows are looked at.
"""
