import { HostAllowlist } from './host-allowlist.js';

/** Which servers users may name in addresses that the service or an agent calls later (LLM and MCP servers). */
export class OutboundAddresses {
  private readonly allowlist: HostAllowlist | null;

  /**
   * @param entries the operator's allowlist (see `HostAllowlist`); null allows every host
   * @throws Error naming the first entry that has none of the accepted forms
   */
  constructor(entries: readonly string[] | null) {
    this.allowlist = entries && HostAllowlist.parse(entries);
  }

  /** The sentence against an address whose server the operator does not allow, or null. ws counts as http. */
  problem(address: string): string | null {
    if (!this.allowlist) {
      return null;
    }
    const dialled = address.replace(/^ws(s?):/i, 'http$1:');
    return URL.canParse(dialled) && this.allowlist.allows(new URL(dialled))
      ? null
      : 'This server may not be used here; OUTBOUND_ALLOWLIST names those that may.';
  }
}
