import { Controller, Get } from '@nestjs/common';
import { ApiProperty, ApiTags } from '@nestjs/swagger';
import { AdministratorsOnly } from '../auth/auth.guard.js';
import { recentLogLines } from '../common/logging/app-logger.js';
import { ApiRoute } from '../common/openapi/api-route.js';
import { Shown, TEXT_MAP } from '../common/openapi/responses.js';
import { productVersion } from '../common/product.js';
import { configurationReport } from '../config/load-config.js';
import { ReadinessPartDto, toPartDtos } from './readiness.dto.js';
import { Readiness } from './readiness.js';

class DiagnosticsDto {
  @Shown(
    'Of the service and of what it runs on.',
    { slipway: '0.2.0', node: '24.11.0', platform: 'linux-x64' },
    TEXT_MAP,
  )
  versions: Record<string, string>;

  @Shown(
    'Variables that are set. Only numbers, words of a list and paths show their value.',
    { PORT: '3000', DATABASE_URL: '(set)' },
    TEXT_MAP,
  )
  configuration: Record<string, string>;

  @ApiProperty({ type: [ReadinessPartDto], description: 'As in `GET /health/ready`, with the causes.' })
  parts: ReadinessPartDto[];

  @Shown('The last lines of the log, oldest first.', ['12:30:01 INFO listening'], { type: [String] })
  log: string[];
}

/** What an operator attaches to a report, or looks at first. */
@ApiTags('Health')
@AdministratorsOnly()
@Controller('api/v1/diagnostics')
export class DiagnosticsController {
  constructor(private readonly readiness: Readiness) {}

  @Get()
  @ApiRoute(
    'get_diagnostics',
    'Versions, configuration without secrets, parts and last log lines of this replica',
    {
      description: 'Administrators only.',
      answer: { type: DiagnosticsDto, description: 'This replica' },
    },
  )
  async show(): Promise<DiagnosticsDto> {
    return {
      versions: programVersions(),
      configuration: configurationReport(),
      parts: toPartDtos(await this.readiness.report(), true),
      log: [...recentLogLines()],
    };
  }
}

export function programVersions(): Record<string, string> {
  return {
    slipway: productVersion(),
    node: process.versions.node,
    platform: `${process.platform}-${process.arch}`,
  };
}
