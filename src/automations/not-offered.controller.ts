import { All, Controller, Get, Post } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import { DomainError } from '../common/errors/domain-error.js';

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

/** Routes of the peer's document that are refused, instead of looking unknown. */
@ApiExcludeController()
@Controller('api/automation/v1')
export class NotOfferedController {
  @Post()
  code(): never {
    throw notOffered('tarballs');
  }

  @All(['uploads', 'uploads/*rest'])
  uploads(): never {
    throw notOffered('tarballs');
  }

  @Get(':id/tarball')
  tarball(): never {
    throw notOffered('tarballs');
  }

  @All(['preset/plugin', 'plugin-spec'])
  plugins(): never {
    throw notOffered('plugins');
  }

  @All(['drafts', 'drafts/*rest'])
  drafts(): never {
    throw notOffered('drafts');
  }

  @All(['kv', 'kv/*rest'])
  keysAndValues(): never {
    throw notOffered('kv');
  }

  @All('git-sync/*rest')
  gitSync(): never {
    throw notOffered('git_sync');
  }

  @All('telemetry/*rest')
  telemetry(): never {
    throw notOffered('telemetry');
  }

  @Post(['runs/:run_id/complete', 'runs/:run_id/phase'])
  runReports(): never {
    throw notOffered('run_reports');
  }

  @Get('events/:source/requested-types')
  requestedTypes(): never {
    throw notOffered('requested_event_types');
  }
}

function notOffered(what: keyof typeof NOT_OFFERED): DomainError {
  return new DomainError('not_offered', 'not_offered', NOT_OFFERED[what]);
}
