"""The table behind the code registry: one row per code.

A number is never reused. Columns: code, name, severity, phase, life, cause, next step.
"""

from __future__ import annotations

ROWS = """
PZ0101 | YamlShape | error | load, render | live | A project file cannot be read or is not valid YAML, or a key is missing, unknown or of the wrong shape. | Correct the file, line and key that the message names.
PZ0102 | VarsInvalid | error | load, command line | live | `vars:` is not a mapping, or `--vars` is not a JSON object. | Write an object of names and values.
PZ0103 | UndeclaredEnvVar | error | load, render | live | An environment variable that the project uses is not set. | Set the variable, or remove the reference.
PZ0104 | TemplateError | error | render | live | A pipeline's template cannot be parsed or rendered. | Correct the line that the message names.
PZ0110 | DuplicateName | error | load, compile | live | Two things of the project end up with one name. | Rename one of them.
PZ0111 | SidecarUnknownPipeline | error | load | live | A sidecar names no pipeline, or one that does not exist. | Correct `pipeline:` or delete the file.
PZ0112 | RemovedInputField | error | load, render | live | A write declares `input`, which no longer exists. | Start the pipeline with `INSERT INTO {{ sink(...) }}`.
PZ0113 | InvalidCheck | error | load | live | A check is malformed. | Correct its type, columns or options.
PZ0120 | InvalidEngineConfig | error | load | live | A value below `engine:` is malformed or out of range. | Use one of the accepted values.
PZ0121 | RetryConfigInvalid | error | load, render | live | A `retry:` block is malformed. | Correct the field that the message names.
PZ0122 | ConcurrencyConfigInvalid | error | load, render | live | `max_concurrency` is no positive whole number, or stands on a write. | Set it on the connection.
PZ0123 | RetentionConfigInvalid | error | load | live | `retention:` is malformed. | Use `keep_last` of at least 1, or `off`.
PZ0124 | StateBackendConfigInvalid | error | load | live | `state:` is malformed, or its keys do not fit the backend. | Correct or remove the key.
PZ0125 | StateConnectionInvalid | error | load | live | The state backend has no usable connection, credentials or address. | Point it at valid ones.
PZ0126 | DriftPolicyInvalid | error | load | live | `on_source_drift` has an unknown value. | Use `ignore`, `warn` or `fail`.
PZ0127 | SchemaAcceptTargetInvalid | error | schema accept | live | A target of `pz schema accept` has no observed schema. | Run once with a drift policy, then accept.
PZ0130 | InitTargetNotEmpty | error | init | live | The folder to scaffold into is not empty. | Choose another folder.
PZ0131 | InitTemplateUnknown | error | init | live | There is no template of that name. | See `pz init --list-templates`.
PZ0132 | InitInvocationInvalid | error | init | live | `pz init` got no name, or a name together with `--list-templates`. | Pass one of the two.
PZ0133 | EnvRefNotInterpolatedInEntity | warning | load | live | A `${NAME}` below `entities:` stays literal text. | Move it to the connection.
PZ0134 | MaterializationInvalid | error | load | live | `materialization` has an unknown value. | Use `table`, `view` or `ephemeral`.
PZ0135 | YamlExtensionIgnored | warning | load | live | A `.yaml` file, or one beside the pipelines, stands where it is not read. | Rename it to `.yml`, or move it to `pipelines/configs/`.
PZ0136 | InvalidIdentifierName | error | load | live | A pipeline's or connection's name is not an identifier, or a folder's cannot be printed. | Use the suggested name.
PZ0137 | UnsupportedOptionValue | error | compile | live | An option's value cannot be written as JSON. | Use scalars, lists and mappings.
PZ0201 | UnresolvedRef | error | render, compile | live | `source()` or `ref()` is malformed or names nothing that exists. | Correct the name.
PZ0202 | Cycle | error | compile | live | Pipelines depend on each other in a circle. | Remove one of the references shown.
PZ0203 | SinkInputMissing | error | - | retired | Belonged to a removed YAML binding. | -
PZ0204 | EphemeralChain | error | compile | live | An ephemeral pipeline refers to another ephemeral one. | Make one of them a table or a view.
PZ0205 | ChecksOnEphemeral | error | compile | live | An ephemeral pipeline has checks. | Make it a table or a view, or remove the checks.
PZ0206 | SinkBindingConflict | error | compile | live | Two pipelines write one output. | Keep one writer.
PZ0207 | SinkOutputUnbound | error | - | retired | Belonged to outputs declared without a writer. | -
PZ0208 | InvalidSinkCall | error | render, compile | live | `sink()` is malformed, repeated, or not at the start of the pipeline. | Start the file with `INSERT INTO {{ sink(...) }}`.
PZ0209 | MergeRequiresKeys | error | compile | live | A merge has no keys. | Add `keys`.
PZ0210 | SelectorNoMatch | error | selection | live | A name or selector matches no node. | See `pz ls`.
PZ0211 | KeysWithoutMerge | error | compile | live | Keys are given without `strategy: merge`. | Use merge, or remove the keys.
PZ0212 | CursorInvalid | error | compile | live | An incremental cursor is missing from the contract or has a type that cannot be a cursor. | Add or retype the column.
PZ0213 | WindowConfigInvalid | error | compile | live | A bounded window breaks a rule. | Correct `max_window`, `initial` or `until`.
PZ0214 | IncrementalAppendUnacknowledged | error | compile, plan | live | An incremental read is appended without consent to duplicates. | Use merge, or write `duplicates: accept`.
PZ0215 | MultiFlowNeedsSelection | error | run | live | The project has several flows and none was chosen. | Name a flow, or pass `--all`.
PZ0216 | SelectionConflict | error | run, plan | live | More than one way of selecting was used. | Keep one of names, `--select` and `--all`.
PZ0217 | TemplatedPathCursorInvalid | error | compile | live | A dated path has no date or timestamp cursor. | Declare `sync: {mode: incremental, cursor: ...}` on such a column.
PZ0218 | TemplatedPathTokensInvalid | error | compile | live | The date tokens of a path are malformed. | Order them from coarse to fine, without gaps.
PZ0219 | PartitionedOutputConfigInvalid | error | compile | live | `partition_by` is malformed or does not fit the path. | Give one column for a dated path.
PZ0221 | TemplatedPathWindowRequired | error | compile | live | A dated path has no bounded window. | Add `initial` and `max_window`.
PZ0222 | FilesPerPartitionInvalid | error | compile | live | `files_per_partition` is no positive whole number. | Correct or remove it.
PZ0223 | DeadLeafPipeline | warning | compile | live | Nothing uses a pipeline's rows. | Add a sink or a `ref()`, or leave it while you explore.
PZ0224 | UnrecognizedWatermarkExpression | error | compile | live | A `watermark()` is used in a way that cannot bound a read. | Write `<cursor> >= {{ watermark(...) }}` as a filter.
PZ0225 | ConflictingIncrementalDeclaration | error | compile | live | One entity is declared incremental in two ways. | Keep one of them.
PZ0226 | InconsistentIncrementalConsumers | error | compile | live | One reader filters an entity by `watermark()` and another does not. | Add the filter, or declare `sync:` in YAML.
PZ0227 | WatermarkCursorUndeclared | error | compile | live | The cursor of a `watermark()` is not in the contract or cannot be a cursor. | Add or retype the column.
PZ0228 | WriteModeUnknown | error | load, render | live | The write strategy does not exist. | Use `replace`, `append` or `merge`.
PZ0229 | DescendingCursorTruncatable | error | compile | live | A page limit on a descending cursor would skip rows for good. | Remove `max_pages`, or sort ascending.
PZ0230 | PipelineNameCollidesWithStaging | error | compile | live | A pipeline is named like the relation of a source. | Rename the pipeline.
PZ0231 | WatermarkCursorDisagreement | error | compile | live | One pipeline compares an entity's `watermark()` with different columns. | Use one column.
PZ0232 | RunIdentityInRenderedSql | warning | compile | live | A pipeline's SQL holds the run's id or time. | Expect `pz retry` to run it again each time.
PZ0233 | IncrementalRowsCutOff | warning | compile | live | A pipeline limits or samples the rows of an incremental read. | Remove the limit; read in slices with `max_window`.
PZ0301 | ConnectorConfigInvalid | error | validate | live | A connection or option does not fit its connector. | Correct the value.
PZ0304 | ConnectorPackageMissing | error | - | reserved | - | -
PZ0305 | ConnectorNotInstalled | error | validate, run | live | There is no connector of that name, or its driver is missing. | Correct the name, or install the extra shown.
PZ0306 | ProtocolMismatch | error | registry | live | A connector was built for another version of the contract. | Update the connector.
PZ0307 | NoConnectorEntryPoint | error | registry | live | A package announces no connector, or it does not load. | Use another package or version.
PZ0311 | NativeSetupFailed | error | plan, run | live | DuckDB cannot be prepared for a native read or write. | Install the extra shown, and check the credentials.
PZ0312 | NativePathRequired | error | plan, run | live | An option needs the universal path, which this connector does not have. | Remove the option.
PZ0313 | WindowCapabilityMissing | error | plan | live | The connector cannot read bounded windows. | Remove the window, or use another connector.
PZ0314 | TemplatingCapabilityMissing | error | plan | live | The connector does not support dated paths or `partition_by`. | Remove it, or use another connector.
PZ0315 | SyncStateConflict | error | compile, plan | live | An entity would have both an ordered cursor and a change token. | Remove one.
PZ0316 | SyncPartitionedReadConflict | error | plan, run | live | A change feed is read in several partitions. | Use an ordered cursor.
PZ0317 | PacingUnsupported | error | plan | live | `rate_limit` is set where requests cannot be paced. | Remove it.
PZ0318 | RateLimitConfigInvalid | error | load, render | live | `rate_limit` is malformed or misplaced, or `max_concurrency` stands on a read. | Set it on the connection.
PZ0319 | PartitionIdentityInvalid | error | plan, run | live | A connector's partitions have missing or repeated identities. | Update the connector.
PZ0320 | RestoreFailed | error | - | reserved | - | -
PZ0321 | LockDrift | error | restore | reserved | An installed connector is missing or not the locked version. | Run the shown `pip install`, or `pz restore --update`.
PZ0322 | LockMissing | error | restore | reserved | External connectors are declared but there is no lock file. | `pz restore`
PZ0323 | FloatingVersionRejected | error | restore | reserved | A connector's version is a range. | Pin one version.
PZ0324 | WriteModeUnsupported | error | plan | live | The connector does not support the strategy or schema policy. | Change it.
PZ0325 | PackageAssetCollision | error | - | reserved | - | -
PZ0326 | PackageContentMismatch | error | restore | reserved | An installed connector's files differ from the lock. | Reinstall it, or `pz restore --update` if you trust it.
PZ0327 | LockedPackageChanged | error | - | reserved | - | -
PZ0328 | RestoreFeedUnreachable | error | - | reserved | - | -
PZ0329 | RestoreDiskFailure | error | restore | reserved | The lock file cannot be read or written. | Check disk space and permissions.
PZ0330 | ConnectionCheckFailed | error | validate --connect | live | A connection, a schema or a destination could not be reached. | Check settings and network.
PZ0331 | SchemaDrift | error | validate --connect, run | live | A source's columns differ from what was declared or accepted. | Correct the contract, or accept the change.
PZ0332 | RetiredReadSurface | error | load, render | live | A read uses the retired `incremental` block. | Use `sync`.
PZ0333 | RetiredWriteSurface | error | load, render | live | A write uses a retired option name. | Use the new name.
PZ0334 | SyncModeInvalid | error | load, render | live | A `sync` block or an enumerated write option is malformed. | Correct the value.
PZ0335 | IncompatiblePair | error | compile, plan | live | The way a source is read does not fit the way its rows are written. | Use merge.
PZ0336 | CdcConsentMissing | error | compile | live | Captured deletes reach a merge that does not say what to do with them. | Set `on_delete`.
PZ0337 | CdcDeleteRouteInvalid | error | compile | live | `on_delete` has no captured deletes, or several sources feed it. | Remove it, or restructure.
PZ0338 | ChangeCaptureUnsupported | error | plan, run | live | The connector cannot capture changes. | Change the sync mode.
PZ0339 | DeleteApplyUnsupported | error | plan | live | The destination cannot apply deletes. | Use `on_delete: ignore`.
PZ0340 | CdcDeleteKeysUnavailable | error | run | reserved | Captured deletes lack key values. | Correct the keys.
PZ0341 | WriteSurfaceSplit | error | compile | live | One side of an entity is declared in two places. | Keep one.
PZ0343 | Unused | error | - | retired | Was never used. | -
PZ0344 | EntityNameInvalid | error | load, render | live | An entity's name is empty, has an empty part, or holds blanks or control characters. | Spell it as the remote system does.
PZ0345 | ReservedConnectionKey | error | validate | live | A connector's schema declares a key that pz owns. | Rename it in the connector.
PZ0346 | RetiredConnectionDirectory | error | load | live | The project has a retired `sources/` or `sinks/` folder. | Move its content to connections.yml.
PZ0347 | RetiredOutputsBlock | error | load | live | The project has a retired `outputs:` block. | Declare connections instead.
PZ0348 | RetiredEntityQualifier | error | load, render | live | An entity side has a `schema` or `table` key. | Put them into the entity's name.
PZ0349 | SourceReadByMultiplePipelines | error | - | reserved | Several readers are allowed. | -
PZ0351 | WatermarkCeilingWithoutFloor | error | - | reserved | Upper bounds are PZ0224. | -
PZ0352 | FeedsRemoved | error | load | live | project.yml has a retired `feeds:` key. | Remove it; connectors are installed with pip.
PZ0353 | NativePathContractMismatch | error | plan | live | A connector refuses a native read or write. | Align the contract and the configuration.
PZ0354 | ProcessEntrypointMissing | error | - | reserved | - | -
PZ0355 | ConnectorSpawnFailed | error | - | reserved | - | -
PZ0356 | ConnectorHandshakeFailed | error | - | reserved | - | -
PZ0357 | ProtocolViolation | error | - | reserved | - | -
PZ0358 | ConnectorDiedMidOperation | error | - | reserved | - | -
PZ0359 | UnsignedExtensionRefused | plan reason | plan | reserved | An unsigned DuckDB extension is not allowed, so the universal path is used. | Allow it on the connection, or sign it.
PZ0360 | ExternalConnectorNotOutOfProcess | error | - | reserved | - | -
PZ0361 | FileFormatUnsupported | error | validate, plan, run | live | A file format is not supported here. | Pick a listed format.
PZ0362 | FileFormatOptionInvalid | error | validate, plan, run | live | An option does not belong to the format, or its value is wrong. | Remove or correct it.
PZ0363 | SyncStateNativeOnly | error | plan | live | A token-resumed read is asked of a connector that only reads natively. | Use a cursor or a full read.
PZ0364 | ConnectorConfigWarning | warning | validate | live | A connector has advice about its configuration. | See the message.
PZ0365 | PathLeavesRoot | error | validate | live | A relative path leaves its root. | Correct the path.
PZ0401 | SqlDryCompile | error | compile, validate | live | A pipeline's SQL is not one query that binds against empty tables. | Correct the SQL or the contract.
PZ0500 | UnexpectedEngineFailure | error | any | live | Something happened that pz did not foresee. | Please report it.
PZ0501 | NodeFailed | error | run | live | A node failed without a more specific code. | Read the message.
PZ0502 | NoPriorRun | error | retry | live | There is no earlier run to retry. | Run first.
PZ0503 | PriorRunIncomplete | error | retry | live | The earlier run never finished. | Run again.
PZ0504 | PriorRunFatal | error | retry | live | The earlier run ended fatally. | Run again.
PZ0505 | UnsupportedCursorType | error | run | live | A cursor's landed or stored type is unusable or differs. | Align the types, or use `--full-refresh`.
PZ0506 | BreakerOpen | error | run | live | A connection's circuit breaker is open. | Try again later.
PZ0507 | CdcTargetInvalid | error | cdc drop | reserved | Not exactly one target was given. | Pass one.
PZ0508 | CdcTargetNotFound | error | cdc drop | reserved | The target does not capture changes. | Correct the name.
PZ0510 | CheckFailed | error | run, test | live | A check found violations. | Look at the data.
PZ0511 | CleanSelectorConflict | error | clean | live | Both selectors were given. | Pass one.
PZ0512 | CleanSelectorInvalid | error | clean | live | A selector's value is unusable. | Correct it.
PZ0513 | StateKeyNotFound | error | state | live | There is no stored value of that key. | `pz state show`
PZ0514 | StateRollbackTargetInvalid | error | state | live | The run recorded nothing usable. | Pick another run.
PZ0515 | StateValueInvalid | error | state | live | The value cannot be read, or is ahead of the stored one. | Correct the value.
PZ0516 | StateArgumentInvalid | error | state | live | An argument is missing, or nobody can be asked. | Add it, or pass `--yes`.
PZ0517 | StateRunInFlight | error | state | live | A run holds the lock. | Wait for it.
PZ0518 | StateStoreUnavailable | error | state | live | The state store cannot be used. | Check its settings and whether it can be reached.
PZ0519 | StateSchemaVersionMismatch | error | state | live | The store was written by a newer version, or could not be migrated. | Upgrade pz.
PZ0520 | StateConcurrencyConflict | error | state | live | Somebody else changed the stored value meanwhile. | Do not run one entity twice at once.
PZ0521 | MergeKeyNull | error | run | live | A merge key holds NULL. | Filter the rows, or correct the keys.
PZ0522 | MergeKeyDuplicates | warning | run | live | The input of a merge repeats a key. | Deduplicate in the pipeline.
PZ0523 | LossyIntegerInference | warning | run | live | Inferred floating-point columns hold large whole numbers. | Declare the column's type.
PZ0524 | AmbiguousDateInference | warning | run | live | It cannot be told whether day or month comes first. | Use ISO dates, or declare `varchar`.
PZ0525 | NodeTimedOut | error | run | live | An attempt took longer than `engine.node_timeout`. | Raise the limit.
PZ0526 | NodeUnresponsive | error | run | live | A cancelled node did not stop. | Look into the connector.
PZ0527 | StateNotAdvanced | warning | run | live | Rows were delivered but the new position was not stored. | Expect the rows to be read again.
PZ0528 | StateSchemaMigrationLockTimedOut | error | state | reserved | Another process is migrating the store. | Try again.
PZ0529 | StateQueryFailed | error | state | reserved | A SQL store refused a statement. | See its number in the message.
PZ0530 | HttpStateTokenOverInsecureUrl | warning | load | live | A token would travel over plain http. | Use https.
PZ0531 | EngineAccessDenied | error | run | live | The operating system denied access to a file. | Correct the permissions.
PZ0532 | EngineDiskFull | error | run | live | The disk is full. | Free space.
PZ0533 | EngineFileLocked | error | run | live | Another process holds a file. | Close it there.
PZ0534 | RunsLimitInvalid | error | runs | live | `--limit` is not positive. | Use 1 or more.
PZ0535 | CompletionShellInvalid | error | - | reserved | - | -
PZ0536 | SqlStateValueTooLong | error | state | reserved | A value does not fit the store's column. | Shorten it.
PZ0601 | McpLiteralCredential | error | - | reserved | - | -
PZ0602 | McpMutationTarget | error | - | reserved | - | -
PZ0603 | McpInitDirNotEmpty | error | - | reserved | - | -
PZ0604 | McpRunLockHeld | error | - | reserved | - | -
PZ0605 | McpClientConfigInvalid | error | - | reserved | - | -
PZ0606 | McpPathEscapesProject | error | - | reserved | - | -
PZ0607 | McpDocsUnavailable | error | - | reserved | - | -
PZ0608 | McpDocsRequestInvalid | error | - | reserved | - | -
PZ0609 | McpToolFailed | error | - | reserved | - | -
PZ0610 | McpDocsResponseTooLarge | error | - | reserved | - | -
PZ0611 | McpClientConfigHasComments | error | - | reserved | - | -
PZ0701 | DefinitionsStale | error | dagster | live | A selected node is not in the compiled project. | Reload the definitions.
PZ0702 | AssetKeyCollision | error | dagster | live | Two nodes map to one asset key or output name. | Override the translator for one of them.
PZ0703 | PartitionUnsupported | error | dagster | reserved | A cursor type or sink cannot be sliced by partitions. | Remove the partitions, or change the sink.
PZ0704 | PartitionAndWatermark | warning | dagster | reserved | A partitioned entity also has a stored watermark. | Keep one of the two.
PZ0705 | StateCopy | warning | dagster | live | The state copy could not be read or written, or was used to restore. | See the message.
PZ0706 | StateDiverged | warning | dagster | live | Two histories of one state exist; the lower position is kept. | Check which of them is right.
PZ0707 | ProjectBroken | error | dagster | live | An asset of a project that does not compile was materialized. | Correct the problems listed.
PZ0708 | CheckNotReported | error | dagster | live | A selected check gave no result although its asset succeeded. | Reload the definitions and run again.
"""
