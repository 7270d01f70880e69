import { Controller, Get, Query, UseGuards } from '@nestjs/common';
import { ApiSecurity, ApiTags } from '@nestjs/swagger';
import { AdminGuard } from '../../auth/auth.guard.js';
import { AuditQueries } from '../audit.queries.js';
import { type AuditPageDto, AuditQueryDto, toAuditFilter, toAuditPageDto } from './audit.dto.js';
import { SearchAuditOperation } from './audit.openapi.js';

@ApiTags('Audit')
@ApiSecurity('APIKeyHeader')
@UseGuards(AdminGuard)
@Controller('api/v1/audit')
export class AuditController {
  constructor(private readonly entries: AuditQueries) {}

  @Get()
  @SearchAuditOperation()
  async search(@Query() query: AuditQueryDto): Promise<AuditPageDto> {
    return toAuditPageDto(await this.entries.page(toAuditFilter(query), query.limit ?? 100, query.page_id));
  }
}
