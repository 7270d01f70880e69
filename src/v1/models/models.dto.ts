import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import { OrNull, Shown } from '../../common/openapi/responses.js';
import { PageOf, PageQuery } from '../../common/pagination/page.dto.js';
import { Flag } from '../../common/validation/number-fields.js';
import { Text } from '../../common/validation/text-fields.js';
import type { ListedModel } from '../app-conversations/agent-request/model-catalogue.js';

export class SearchProvidersQueryDto extends PageQuery('Most entries of a page.', 50) {
  @Text('Part of the name; upper and lower case do not matter.', { example: 'sonnet' }) query?: string;
  @Flag('Only verified ones, or only the others.', { example: true }) verified__eq?: boolean;
}

export class SearchModelsQueryDto extends SearchProvidersQueryDto {
  @Text('The provider, exactly.', { example: 'anthropic' }) provider__eq?: string;
}

const VERIFIED =
  'The agent server of this service reaches it by its name alone, or the operator lists it. Every other model needs the address of its provider (`base_url`).';

@ApiSchema({ name: 'LLMModel' })
class ModelDto {
  @OrNull('anthropic') provider: string | null;
  @ApiProperty({ description: 'Without the provider.', example: 'claude-sonnet-4-5' }) name: string;
  @ApiProperty({ description: VERIFIED, example: true }) verified: boolean;
  @Shown('Always false: every listed model may be offered.', false) hidden: boolean;
  @Shown('Always null: no model is an alias.', null, { type: 'null' }) canonical: null;
}

@ApiSchema({ name: 'LLMModelPage' })
export class ModelPageDto extends PageOf(ModelDto) {}

export function toModelDto(model: ListedModel): ModelDto {
  return { ...model, hidden: false, canonical: null };
}

class ProviderDto {
  @ApiProperty({ example: 'anthropic' }) name: string;
  @ApiProperty({ description: 'Some of its models are verified.', example: true }) verified: boolean;
}

export class ProviderPageDto extends PageOf(ProviderDto) {}
