/**
 * What programs in a sandbox are told of the ports that they may use.
 *
 * @param ports numbers by name, as programs see them
 * @param host where they should listen, so that the ports are reached from outside
 */
export function portVariables(ports: Readonly<Record<string, number>>, host: string): Record<string, string> {
  const variables = Object.entries(ports).map(([name, port]) => [name, String(port)] as const);
  if (variables.length === 0) {
    return {};
  }
  const named = { ...Object.fromEntries(variables), LISTEN_HOST: host };
  // Our agent server hands on to tools what it knows by name, and this.
  return { ...named, SLIPWAY_TOOL_VARIABLES: Object.keys(named).join(',') };
}
