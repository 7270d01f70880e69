/** Where the ports of what agents start were reached after one start of a sandbox. */
export interface PortAddresses {
  /** Counts the starts. A replica of an earlier version starts sandboxes without changing this. */
  generation: number;
  /** By name. */
  addresses: Record<string, string>;
}

/** Where they are reached now; empty where nobody knows. */
export function currentPorts(
  portAddresses: PortAddresses | null,
  generation: number,
): Readonly<Record<string, string>> {
  return portAddresses?.generation === generation ? portAddresses.addresses : {};
}
