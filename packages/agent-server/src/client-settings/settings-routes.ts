import { type Request, Router } from 'express';
import { z } from 'zod';
import { switchLlmSchema } from '@slipway/agent-protocol/conversation-schemas.js';
import { namedValues } from '@slipway/common/validation/named-values.js';
import { MASK } from '@slipway/common/secret-mask.js';
import { existing, HttpError } from '../http/http-error.js';
import { parseRequest } from '../http/request-parsing.js';
import { redactAgent } from '../secret-masker.js';
import type { ClientSettings, LlmProfiles } from './client-settings.js';

/** More would not fit into an environment variable. */
const MAX_SECRET_LENGTH = 128 * 1024;
const text = z.string().nullable().optional();
const free = namedValues(z.string(), z.unknown());

const agentDiff = z.looseObject({
  llm: z.looseObject({ model: z.string().min(1).optional(), api_key: text, base_url: text }).optional(),
  mcp_config: free.optional(),
});
const updateSchema = z.object({
  agent_settings_diff: agentDiff.nullish(),
  conversation_settings_diff: free.nullish(),
  misc_settings_diff: free.nullish(),
});
const nameSchema = z
  .string()
  .regex(
    /^[A-Za-z][A-Za-z0-9_]{0,63}$/,
    'A name begins with a letter and has at most 64 letters, digits and underscores',
  );
const secretSchema = z.object({
  name: nameSchema,
  value: z
    .string()
    .max(MAX_SECRET_LENGTH)
    .refine((value) => value.trim() !== '' && value !== MASK, 'A value must be neither empty nor masked'),
  description: z.string().max(1_000).nullish(),
});
const exposureSchema = z
  .enum(['plaintext'], { error: "Input should be 'plaintext', or be left out" })
  .optional();

export function settingsRoutes(settings: ClientSettings): Router {
  const router = uncachedRouter();

  router.get('/', (request, response) => {
    response.json(settings.show(requestedExposure(request)));
  });

  router.patch('/', (request, response) => {
    const body = parseRequest(updateSchema, 'body', request.body);
    const changes = {
      ...(body.agent_settings_diff && { agent_settings: body.agent_settings_diff }),
      ...(body.conversation_settings_diff && { conversation_settings: body.conversation_settings_diff }),
      ...(body.misc_settings_diff && { misc_settings: body.misc_settings_diff }),
    };
    if (Object.keys(changes).length === 0) {
      throw new HttpError(400, 'Send agent_settings_diff, conversation_settings_diff or misc_settings_diff.');
    }
    settings.update(changes);
    response.json(settings.show(false));
  });

  router.get('/secrets', (_request, response) => {
    response.json({ secrets: settings.secrets() });
  });

  router.put('/secrets', (request, response) => {
    const { name, value, description = null } = parseRequest(secretSchema, 'body', request.body);
    settings.setSecret(name, value, description);
    response.json({ name, description });
  });

  router.get('/secrets/:name', (request, response) => {
    const name = parseRequest(nameSchema, 'path', request.params.name);
    response.type('text/plain').send(existing(settings.secret(name), 'Secret not found'));
  });

  router.delete('/secrets/:name', (request, response) => {
    if (!settings.deleteSecret(parseRequest(nameSchema, 'path', request.params.name))) {
      throw new HttpError(404, 'Secret not found');
    }
    response.json({ deleted: true });
  });

  return router;
}

function uncachedRouter(): Router {
  const router = Router();
  router.use((_request, response, next) => {
    response.set('Cache-Control', 'no-store');
    next();
  });
  return router;
}

function requestedExposure(request: Request): boolean {
  return parseRequest(exposureSchema, 'header', request.get('x-expose-secrets')) === 'plaintext';
}

const profileNameSchema = z
  .string()
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/,
    'A name begins with a letter or digit and has at most 64 letters, digits, dots, dashes and underscores',
  );
const saveSchema = switchLlmSchema.extend({ include_secrets: z.boolean().default(true) });

export function profileRoutes(profiles: LlmProfiles): Router {
  const router = uncachedRouter();

  router.get('/', (_request, response) => {
    const shown = Array.from(profiles.byName, ([name, profile]) => ({
      name,
      model: profile.model,
      base_url: redactAgent(profile)['base_url'] ?? null,
      provider_connection_id: null,
      provider_connection_broken: false,
      api_key_set: Boolean(profile.api_key),
    }));
    response.json({ profiles: shown, active_profile: null });
  });

  router.get('/:name', (request, response) => {
    const withSecrets = requestedExposure(request);
    const name = profileNameOf(request.params.name);
    const profile = profiles.get(name);
    const config = withSecrets ? profile : { ...redactAgent(profile), api_key: null };
    response.json({ name, config, api_key_set: Boolean(profile.api_key) });
  });

  router.post('/:name', (request, response) => {
    const name = profileNameOf(request.params.name);
    const { llm, include_secrets: withSecrets } = parseRequest(saveSchema, 'body', request.body);
    profiles.save(name, withSecrets ? llm : { ...llm, api_key: null });
    response.status(201).json({ name, message: `Profile '${name}' saved` });
  });

  router.delete('/:name', (request, response) => {
    const name = profileNameOf(request.params.name);
    profiles.byName.delete(name);
    response.json({ name, message: `Profile '${name}' deleted` });
  });

  return router;
}

function profileNameOf(given: string): string {
  return parseRequest(profileNameSchema, 'path', given);
}
