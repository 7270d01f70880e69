import { errors as joseErrors } from 'jose';
import * as client from 'openid-client';
import { UpstreamError } from '@slipway/common/http/upstream-error.js';

/** Whether a renewal is refused for good; whatever else goes wrong there says nothing of the person. */
export function isRefusedGrant(error: unknown): boolean {
  return error instanceof client.ResponseBodyError && error.error === 'invalid_grant';
}

/** What is wrong with a token or a code; null where the issuer itself is away. */
export function reasonOf(error: unknown): string | null {
  if (error instanceof joseErrors.JWTExpired) {
    return 'the token has expired';
  }
  if (error instanceof joseErrors.JWTClaimValidationFailed) {
    return `the token is not for this service: its claim ${error.claim} is wrong`;
  }
  if (
    error instanceof joseErrors.JWKSTimeout ||
    causes(error).some((cause) => cause instanceof UpstreamError)
  ) {
    return null;
  }
  if (
    error instanceof joseErrors.JWKSNoMatchingKey ||
    error instanceof joseErrors.JWSSignatureVerificationFailed
  ) {
    return 'the token is not signed by the issuer';
  }
  if (error instanceof client.ResponseBodyError || error instanceof client.AuthorizationResponseError) {
    return `the issuer refused: ${error.error}`;
  }
  if (error instanceof joseErrors.JOSEError) {
    return 'the token cannot be read, or is signed in a way that is not accepted';
  }
  return error instanceof client.ClientError && error.code !== 'OAUTH_HTTP_REQUEST_FAILED'
    ? 'what the issuer sent does not belong to this sign-in'
    : null;
}

function causes(error: unknown): unknown[] {
  return error instanceof Error && error.cause !== undefined ? [error, ...causes(error.cause)] : [error];
}
