import { ApiSchema } from '@nestjs/swagger';
import { Text } from '../../../common/validation/text.decorator.js';

/** What shall happen on the events of a conversation. */
@ApiSchema({ name: 'EventCallbackProcessor' })
export class ProcessorDto {
  @Text({
    required: true,
    description:
      '`SetTitleCallbackProcessor` is what is done anyway; others have no effect, and `detail` says so.',
    example: 'SetTitleCallbackProcessor',
  })
  kind: string;
}

/** A plugin; there are none here. */
@ApiSchema({ name: 'PluginSpec' })
export class PluginDto {
  @Text({ required: true, description: 'Where it comes from.', example: 'github:octo/plugins' })
  source: string;

  @Text({ nullable: true, description: 'Branch, tag or commit.', example: 'main' })
  ref?: string | null;

  @Text({ nullable: true, description: 'Folder in the repository.', example: 'plugins/lint' })
  repo_path?: string | null;
}
