"""Where releases go: each sink takes a release once, however often it is handed over.

How to write a sink. Write one module with two classes, and one line in `section.SINKS` (another
package: an entry point of the group `streamdp.sinks`, whose value is the section).

* The section inherits `section.SinkSection` and adds its keys, with `kind: Literal["NAME"]`. A key
  `path` is absolute once the configuration is loaded. `secrets` and `connections` name the keys
  whose text the file must not hold. `written()` names the file or folder that is written
  to, so that nothing else writes there or reads it. `sink(name, context)` makes the sink.
* The sink has a `name` and `deliver(release)`, which publishes a release or raises `SinkError`. A
  crash may hand a release over again: doing it twice leaves what doing it once leaves. It may have
  `attempts`, after which a delivery is given up.

Import what is slow inside of functions: the section is read by every command. `columns.record` and
`columns.columns` are a release as JSON and as typed columns. `tests/sinks/third_party` has a sink
in a package of its own; `tests/sinks/test_contract.py` holds what each must pass.
"""
