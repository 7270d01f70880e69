import { Controller, Get } from '@nestjs/common';
import { ApiProperty, ApiTags } from '@nestjs/swagger';
import { AdministratorsOnly } from '../auth/auth.guard.js';
import { recentLogLines } from '../common/logging/app-logger.js';
import { ApiRoute } from '../common/openapi/api-route.js';
import { productVersion } from '../common/product.js';
import { configurationReport } from '../config/load-config.js';
import { ReadinessPartDto, toPartDtos } from './readiness.dto.js';
import { Readiness } from './readiness.js';

class DiagnosticsDto {
  @ApiProperty({
    type: 'object',
    additionalProperties: { type: 'string' },
    description: 'Of the service and of what it runs on.',
    example: { slipway: '0.2.0', node: '24.11.0', platform: 'linux-x64' },
  })
  versions: Record<string, string>;

  @ApiProperty({
    type: 'object',
    additionalProperties: { type: 'string' },
    description: 'Variables that are set. Only numbers, words of a list and paths show their value.',
    example: { PORT: '3000', DATABASE_URL: '(set)' },
  })
  configuration: Record<string, string>;

  @ApiProperty({ type: [ReadinessPartDto], description: 'As in `GET /health/ready`, with the causes.' })
  parts: ReadinessPartDto[];

  @ApiProperty({
    type: [String],
    description: 'The last lines of the log, oldest first.',
    example: ['12:30:01 INFO listening'],
  })
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
