import path from 'node:path';
import { type Request, Router } from 'express';
import { z } from 'zod';
import type { BashEvent, ExecuteBashRequest } from '@slipway/agent-protocol/server.js';
import { namedValues } from '@slipway/common/validation/named-values.js';
import { searchLog } from '../event-log.js';
import { existing, HttpError } from '../http/http-error.js';
import {
  type BaseFolder,
  isInPeriod,
  logPage,
  parseRequest,
  logPeriod,
  requestedIds,
} from '../http/request-parsing.js';
import { type BashCommands, toBashId } from './bash-commands.js';

const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/;

export const bashRequestSchema = z.object({
  command: z.string().min(1),
  cwd: z.string().nullish(),
  timeout: z.number().positive().max(86_400).default(300),
  env: namedValues(z.string().regex(VARIABLE), z.string()).optional(),
});

const searchSchema = z.object({
  kind__eq: z.enum(['BashCommand', 'BashOutput']).optional(),
  command_id__eq: z.string().optional(),
  ...logPeriod,
  order__gt: z.coerce.number().int().optional(),
  ...logPage,
});

export function bashRoutes(commands: BashCommands, baseFolder: BaseFolder): Router {
  const router = Router({ mergeParams: true });
  const commandOf = (request: Request): ExecuteBashRequest => {
    const { cwd, ...command } = parseRequest(bashRequestSchema, 'body', request.body);
    const base = baseFolder(request);
    return { ...command, cwd: base === null ? cwd : path.resolve(base, cwd ?? '.') };
  };

  router.post('/start_bash_command', async (request, response) => {
    response.json(await commands.start(commandOf(request)));
  });

  router.post('/execute_bash_command', async (request, response) => {
    response.json(await commands.execute(commandOf(request)));
  });

  router.get('/bash_events/search', (request, response) => {
    const query = parseRequest(searchSchema, 'query', request.query);
    response.json(searchLog(commands.log, query, matcher(query)));
  });

  router.get('/bash_events', (request, response) => {
    response.json(requestedIds(request).map((id) => commands.find(id) ?? null));
  });

  router.get('/bash_events/:id', (request, response) => {
    response.json(existing(commands.find(request.params.id), 'Bash event not found'));
  });

  router.post('/bash_commands/:id/stop', async (request, response) => {
    if (!(await commands.stopCommand(request.params.id))) {
      throw new HttpError(404, 'Bash command not found');
    }
    response.json({ success: true });
  });

  router.delete('/bash_events', async (_request, response) => {
    response.json({ cleared_count: await commands.log.clear() });
  });

  return router;
}

/** `order__gt` asks for later output, so commands, which have no order, do not match. */
function matcher(query: z.infer<typeof searchSchema>): (event: BashEvent) => boolean {
  const commandId = query.command_id__eq === undefined ? undefined : toBashId(query.command_id__eq);
  return (event) =>
    (query.kind__eq === undefined || event.kind === query.kind__eq) &&
    (commandId === undefined ||
      toBashId(event.kind === 'BashCommand' ? event.id : event.command_id) === commandId) &&
    isInPeriod(event, query) &&
    (query.order__gt === undefined || (event.kind === 'BashOutput' && event.order > query.order__gt));
}
