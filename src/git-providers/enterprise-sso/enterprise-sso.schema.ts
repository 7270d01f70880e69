import { z } from 'zod';
import { object, requiredText, text } from '../response-schema.js';

/** What may stand in an Authorization header. */
const token = z.string().regex(/^[\x21-\x7e]+$/);

/** The claims of a Keycloak token, as far as its kind goes. */
export const claimsSchema = object({ typ: text });

/** The token endpoint's response. */
export const keycloakTokensSchema = z.object({ access_token: token, refresh_token: text });

/** The broker endpoint's response, which has the git server's own format: a form has texts only. */
export const gitServerTokenSchema = z.object({
  access_token: token,
  /** Seconds; null where they are not told. */
  expires_in: z
    .union([z.number(), requiredText.transform(Number).pipe(z.number())])
    .nullable()
    .catch(null),
});

/** A failure of the token endpoint, or of version 2 of the broker endpoint. */
export const oauthErrorSchema = object({ error: text });
