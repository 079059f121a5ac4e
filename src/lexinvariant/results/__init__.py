"""What the experiments found: rows, one class a kind, and for each experiment what of its rows is shown.

Nothing here measures or draws: experiments write rows, and the report draws the figures and tables described here.
"""
