import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import { NextPageId } from '../../../common/openapi/next-page-id.decorator.js';
import type { Page } from '../../../common/pagination/page.js';
import type { SandboxSpec } from '../sandbox-spec.js';
import { SandboxSpecDto, toSandboxSpecDto } from './sandbox-spec.dto.js';

/** A page of specifications. */
@ApiSchema({ name: 'SandboxSpecInfoPage' })
export class SandboxSpecPageDto {
  @ApiProperty({ type: [SandboxSpecDto] })
  items: SandboxSpecDto[];

  @NextPageId()
  next_page_id: string | null;
}

export function toSandboxSpecPageDto(page: Page<SandboxSpec>): SandboxSpecPageDto {
  return { items: page.items.map(toSandboxSpecDto), next_page_id: page.nextPageId };
}
