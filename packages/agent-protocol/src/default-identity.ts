/** git needs a name to commit, so this is for where nobody else gave one. The address belongs to no host (RFC 2606). */
export const DEFAULT_IDENTITY = { name: 'Slipway', email: 'agent@slipway.invalid' };
