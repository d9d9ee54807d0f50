"""Release kinds, each in a folder of its own.

How to write a kind. Make a folder `streamdp/kinds/NAME/` with these files, and one line in
`OWN` of `spec.py` (another package: an entry point of the group `streamdp.kinds`). No other package
may know its name.

* `section.py`: a pydantic class that inherits `kinds.section.ReleaseSection` and adds its keys,
  with `kind: Literal["NAME"]` and `published`, the names of its columns. Inherited and checked
  already: source, where, by, groups, epsilon, expected_rows, schedule, gate, sinks.
* `kind.py`: a frozen dataclass with the methods of `types.ReleaseKind`:
  - `columns`: a `Column(name, type, role, unit, about, level)` for all that a row may hold. Tables,
    sinks, page and JSON follow from it. Columns of groups are not yours.
  - `signature()`: parameters that a learned state depends on, but not epsilon.
  - `init()`, `learn(state, plan, outcome)`: states are JSON. No data argument.
  - `plan(state, batch)`: a `Plan(query, event, mechanism, unit_event)`. The query is one of
    `types.Query` without bound and groups. The event is what the draws cost one record, in the
    words of `privacy.events`; name the mechanism, its public parameters and a digest of the prior
    under "prior" there. What you draw at a price that holds for a whole unit is `unit_event`.
  - `draw(plan, statistic, entropy)`: total, no exception may depend on the statistic, which may be
    empty, huge or all equal. Draw integers by `privacy.draws`. What `learn` and `publish` need
    beside the rows goes into `Outcome.auxiliary`.
  - `publish(state, outcome)`: adds columns that follow from releases alone.
* `spec.py`: `SPEC = KindSpec(name, section, check, build, accuracy, study=study)`. Import what is
  slow inside of functions: the section is read by every command.
  - `check(section, context)` yields a `Problem(path, what, hint)` for what does not hang together.
    An SQL expression goes through `sections.expressions.expression`.
  - `build(section, context)` makes the kind (in `build.py` where the study makes parts of it, too).
    It is made for one group of records and for one record: draw at
    `context.epsilon_of_record(section)`, never at `section.epsilon`. Expressions are translated by
    `expression(text, context.dialect)`; public files are read by `context.public`.
  - `accuracy`: an `Accuracy`, what `streamdp plan` foretells from public facts; or None.
* `study.py`: a `Study` for `streamdp simulate`; it says the truth of a batch and the error of a
  release, all else has defaults. Or None.

A kind of integers with noise that learns nothing needs no accuracy and no study: it inherits
`additive.AdditiveKind` and says its question, its integers, how much one record changes them, and
its rows. `tests/kinds/third_party` has such a kind in a package of its own, in one file.

Not yours to do: `charging.UnitCharging` bounds units and multiplies the price by a unit's rows,
`grouped.Grouped` wraps the kind where the configuration has groups, and the engine reserves,
burns, commits and restarts a state of another signature. `tests/kinds/` holds what every
registered kind must pass.

The packages below are pure: no clock, file, log, environment or global randomness.
"""
