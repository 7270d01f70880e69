/** git needs a name to commit, so this is used where no other is set. The address belongs to no host (RFC 2606). */
export const DEFAULT_IDENTITY = { name: 'Slipway', email: 'agent@slipway.invalid' };
