import { All, Controller, Get, Post, Req } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import type { Request } from 'express';
import { DomainError } from '../common/errors/domain-error.js';

const BASE = '/api/automation/v1';

/** Routes of the peer's document that are refused, instead of looking unknown: by method, what they are about. */
const ROUTES: Record<'all' | 'get' | 'post', Record<string, keyof typeof NOT_OFFERED>> = {
  all: {
    'uploads{/*rest}': 'tarballs',
    'preset/plugin': 'plugins',
    'plugin-spec': 'plugins',
    'drafts{/*rest}': 'drafts',
    'kv{/*rest}': 'kv',
    'git-sync/*rest': 'git_sync',
    'telemetry/*rest': 'telemetry',
  },
  get: { ':id/tarball': 'tarballs', 'events/:source/requested-types': 'requested_event_types' },
  post: { '': 'tarballs', 'runs/:run_id/complete': 'run_reports', 'runs/:run_id/phase': 'run_reports' },
};

/** What `capabilities` lists, with the reason. */
export const NOT_OFFERED = {
  tarballs: 'Code of your own does not run in the service: use POST /api/automation/v1/preset/prompt.',
  plugins: 'The service has no plugins: use POST /api/automation/v1/preset/prompt.',
  drafts: 'Drafts are not kept: POST /api/automation/v1/validate says what is wrong with one.',
  kv: 'There is no store of keys and values: agents have their workspace.',
  git_sync: 'Automations are kept here, and not in a repository.',
  telemetry: 'The service sends no telemetry about automations.',
  run_reports: 'The service itself sees how a run goes.',
  requested_event_types: 'Hosts send the events that their webhooks choose.',
} as const;

@ApiExcludeController()
@Controller(BASE)
export class NotOfferedController {
  @All(Object.keys(ROUTES.all))
  all(@Req() request: Request): never {
    throw refusal('all', request);
  }

  @Get(Object.keys(ROUTES.get))
  get(@Req() request: Request): never {
    throw refusal('get', request);
  }

  @Post(Object.keys(ROUTES.post))
  post(@Req() request: Request): never {
    throw refusal('post', request);
  }
}

function refusal(method: keyof typeof ROUTES, { route }: Request): DomainError {
  const { path } = route as { path: string };
  const what = ROUTES[method][path.slice(BASE.length + 1)];
  return new DomainError(
    'not_offered',
    'not_offered',
    what ? NOT_OFFERED[what] : 'This is not offered here.',
  );
}
