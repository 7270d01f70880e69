import { type Request, Router } from 'express';
import { z } from 'zod';
import { namedValues } from '@slipway/common/validation/named-values.js';
import { MASK } from '@slipway/common/secret-mask.js';
import { HttpError } from '../http/http-error.js';
import { parseRequest } from '../http/request-parsing.js';
import type { ClientSettings } from './client-settings.js';

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
  const router = Router();
  router.use((_request, response, next) => {
    response.set('Cache-Control', 'no-store');
    next();
  });

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
    const value = settings.secret(parseRequest(nameSchema, 'path', request.params.name));
    if (value === null) {
      throw new HttpError(404, 'Secret not found');
    }
    response.type('text/plain').send(value);
  });

  router.delete('/secrets/:name', (request, response) => {
    if (!settings.deleteSecret(parseRequest(nameSchema, 'path', request.params.name))) {
      throw new HttpError(404, 'Secret not found');
    }
    response.json({ deleted: true });
  });

  return router;
}

export function requestedExposure(request: Request): boolean {
  return parseRequest(exposureSchema, 'header', request.get('x-expose-secrets')) === 'plaintext';
}
