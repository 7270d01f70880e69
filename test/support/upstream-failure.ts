import { UpstreamError } from '@slipway/common/http/upstream-error.js';

/** The `UpstreamError` a call ends with; anything else, success included, is thrown. */
export async function upstreamFailure(call: Promise<Response>): Promise<UpstreamError> {
  const outcome: unknown = await call.catch((error: unknown) => error);
  if (outcome instanceof UpstreamError) {
    return outcome;
  }
  throw outcome instanceof Error ? outcome : new Error('the call succeeded');
}
