import { Router } from 'express';
import { z } from 'zod';
import { switchLlmSchema } from '@slipway/agent-protocol/conversation-schemas.js';
import { redactAgent } from '../secret-masker.js';
import { HttpError } from '../http/http-error.js';
import { parseRequest } from '../http/request-parsing.js';
import { requestedExposure } from './settings-routes.js';

export type ProfileModel = z.infer<typeof switchLlmSchema>['llm'];

const MAX_PROFILES = 100;

/** Named models that a conversation can switch to, in memory only. */
export class LlmProfiles {
  readonly #profiles = new Map<string, ProfileModel>();

  all(): [name: string, profile: ProfileModel][] {
    return [...this.#profiles];
  }

  /** @throws HttpError 404 */
  get(name: string): ProfileModel {
    const profile = this.#profiles.get(name);
    if (profile === undefined) {
      throw new HttpError(404, `Profile '${name}' not found`);
    }
    return profile;
  }

  /** @throws HttpError 409 when there are too many */
  save(name: string, profile: ProfileModel): void {
    if (!this.#profiles.has(name) && this.#profiles.size >= MAX_PROFILES) {
      throw new HttpError(409, `There are ${MAX_PROFILES} profiles, the most allowed: delete one first.`);
    }
    this.#profiles.set(name, profile);
  }

  delete(name: string): void {
    this.#profiles.delete(name);
  }
}

const profileNameSchema = z
  .string()
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/,
    'A name begins with a letter or digit and has at most 64 letters, digits, dots, dashes and underscores',
  );
const saveSchema = switchLlmSchema.extend({ include_secrets: z.boolean().default(true) });

export function profileRoutes(profiles: LlmProfiles): Router {
  const router = Router();
  router.use((_request, response, next) => {
    response.set('Cache-Control', 'no-store');
    next();
  });

  router.get('/', (_request, response) => {
    const shown = profiles.all().map(([name, profile]) => ({
      name,
      model: profile.model,
      base_url: redactAgent(profile)['base_url'] ?? null,
      provider_connection_id: null,
      provider_connection_broken: false,
      api_key_set: hasKey(profile),
    }));
    response.json({ profiles: shown, active_profile: null });
  });

  router.get('/:name', (request, response) => {
    const withSecrets = requestedExposure(request);
    const name = nameOf(request.params.name);
    const profile = profiles.get(name);
    const config = withSecrets ? profile : { ...redactAgent(profile), api_key: null };
    response.json({ name, config, api_key_set: hasKey(profile) });
  });

  router.post('/:name', (request, response) => {
    const name = nameOf(request.params.name);
    const { llm, include_secrets: withSecrets } = parseRequest(saveSchema, 'body', request.body);
    profiles.save(name, withSecrets ? llm : { ...llm, api_key: null });
    response.status(201).json({ name, message: `Profile '${name}' saved` });
  });

  router.delete('/:name', (request, response) => {
    const name = nameOf(request.params.name);
    profiles.delete(name);
    response.json({ name, message: `Profile '${name}' deleted` });
  });

  return router;
}

function hasKey({ api_key: key }: ProfileModel): boolean {
  return key !== undefined && key !== null && key !== '';
}

function nameOf(given: string): string {
  return parseRequest(profileNameSchema, 'path', given);
}
