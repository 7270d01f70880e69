/** Numbers that are read whenever somebody asks for the metrics. */
export interface GaugeSource {
  /** As Prometheus wants it: `slipway_sandboxes`. */
  name: string;
  help: string;
  /** Name of the one label; each key of what is read is a value of it, from a small set. */
  label: string;
  read: () => Promise<Map<string, number>>;
}
