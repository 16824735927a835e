"""The history of one pod in a recording: every attempt, move and preemption, and what was known.

Recording ──> mentions: lines that name the pod, found without decoding the others
                 └──> telling: state and events, entry by entry, from the first to the last
                           └──> attempts: the decision's inputs, evaluated again on that state
"""
