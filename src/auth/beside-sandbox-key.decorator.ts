import { SetMetadata } from '@nestjs/common';

export const BESIDE_SANDBOX_KEY = 'slipway:beside-sandbox-key';

/** For routes where `X-Session-API-Key` may carry a sandbox's key beside the user's own in another header. */
export function BesideSandboxKey(): ReturnType<typeof SetMetadata> {
  return SetMetadata(BESIDE_SANDBOX_KEY, true);
}
