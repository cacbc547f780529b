// SPDX-License-Identifier: Apache-2.0
/// Completion of commands, verbs, options and files, generated from the commands' specifications.
public enum CompletionScript {
    /// The kinds of suggestions for an option's value.
    private enum Offer {
        case file, folder, nothing
    }

    private static let global = ["--help", "--version"]
    private static let help = CommandSpec.Option.flag("help", "tells the options")

    private static func offer(_ option: CommandSpec.Option) -> Offer {
        switch option.value {
        case "FILE", "BINARY", "PATH": .file
        case "DIR": .folder
        default: .nothing
        }
    }

    // MARK: - bash

    /// Does not need the package bash-completion.
    public static func bash(_ specs: [CommandSpec]) -> String {
        var text = """
            # bash completion of carillon; made by `carillon completion bash`.
            _carillon() {
                local cur prev before verbs="" options="" files="" folders="" values="" again="" word
                COMPREPLY=()
                cur=${COMP_WORDS[COMP_CWORD]}
                prev=${COMP_WORDS[COMP_CWORD - 1]}
                before=$((COMP_CWORD - 1))
                # --option=value is three words.
                if [[ $cur == = ]]; then
                    cur=""
                elif [[ $prev == = && $COMP_CWORD -ge 2 ]]; then
                    prev=${COMP_WORDS[COMP_CWORD - 2]}
                    before=$((COMP_CWORD - 2))
                fi
                if ((COMP_CWORD == 1)); then
                    mapfile -t COMPREPLY < <(compgen -W "\((specs.map(\.name) + global).joined(separator: " "))" -- "$cur")
                    return
                fi
                case ${COMP_WORDS[1]} in

            """
        for spec in specs {
            text += "    \(spec.name))\n"
            text += "        verbs=\"\(spec.verbs.joined(separator: " "))\"\n"
            text += "        options=\"\((spec.options + [help]).map { "--\($0.name)" }.joined(separator: " "))\"\n"
            text += "        files=\"\(names(spec, .file))\" folders=\"\(names(spec, .folder))\"\n"
            text += "        values=\"\(names(spec, .nothing))\" again=\"\(repeatable(spec))\"\n"
            text += "        ;;\n"
        }
        return text + """
                *) return ;;
                esac
                if ((before > 1)) || [[ -z $verbs ]]; then
                    case " $files " in *" $prev "*)
                        compopt -o filenames 2>/dev/null
                        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
                        return ;;
                    esac
                    case " $folders " in *" $prev "*)
                        compopt -o filenames 2>/dev/null
                        mapfile -t COMPREPLY < <(compgen -d -- "$cur")
                        return ;;
                    esac
                    case " $values " in *" $prev "*) return ;; esac
                fi
                if [[ -n $verbs ]] && ((COMP_CWORD == 2)); then
                    mapfile -t COMPREPLY < <(compgen -W "$verbs --help" -- "$cur")
                    return
                fi
                # What is there already is offered again only where it may be repeated.
                for word in "${COMP_WORDS[@]:2:COMP_CWORD-2}"; do
                    case " $again " in *" $word "*) continue ;; esac
                    [[ $word == --* ]] && options=" $options " && options=${options/" $word "/ }
                done
                mapfile -t COMPREPLY < <(compgen -W "$options" -- "$cur")
            }
            complete -F _carillon carillon

            """
    }

    /// Options with a value of that kind.
    private static func names(_ spec: CommandSpec, _ kind: Offer) -> String {
        spec.options.filter { $0.value != nil && offer($0) == kind }.map { "--\($0.name)" }.joined(separator: " ")
    }

    private static func repeatable(_ spec: CommandSpec) -> String {
        spec.options.filter(\.isRepeatable).map { "--\($0.name)" }.joined(separator: " ")
    }

    // MARK: - zsh

    /// For a file `_carillon` in a folder of `fpath`.
    public static func zsh(_ specs: [CommandSpec]) -> String {
        var text = """
            #compdef carillon
            # zsh completion of carillon; made by `carillon completion zsh`.
            _carillon() {
                local context state line
                typeset -A opt_args
                _arguments -C \\
                    '(- : *)--help[tells the commands]' \\
                    '(- : *)--version[tells the version and those of its libraries]' \\
                    '1:command:->command' '*::argument:->argument'
                case $state in
                command)
                    local -a commands
                    commands=(

            """
        for spec in specs {
            text += "            \(quoted("\(spec.name):\(spec.summary.replacing(":", with: "\\:"))"))\n"
        }
        text += """
                    )
                    _describe -t commands 'command' commands
                    ;;
                argument)
                    case $words[1] in

            """
        for spec in specs {
            text += "        \(spec.name))\n            _arguments"
            let verbs = spec.verbs.isEmpty ? [] : ["1:verb:(\(spec.verbs.joined(separator: " ")))"]
            for word in verbs + (spec.options + [help]).map(zsh) { text += " \\\n                \(quoted(word))" }
            text += "\n            ;;\n"
        }
        return text + """
                    esac
                    ;;
                esac
            }
            # Loaded by its name it is called, read by `source` it is made known.
            if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
                _carillon "$@"
            else
                compdef _carillon carillon
            fi

            """
    }

    private static func zsh(_ option: CommandSpec.Option) -> String {
        let star = option.isRepeatable ? "*" : ""
        var help = ""
        for character in option.help {
            if "[]\\".contains(character) { help += "\\" }
            help.append(character)
        }
        guard let value = option.value else { return "\(star)--\(option.name)[\(help)]" }
        let action =
            switch offer(option) {
            case .file: "_files"
            case .folder: "_files -/"
            case .nothing: " "
            }
        return "\(star)--\(option.name)=[\(help)]:\(value.replacing(":", with: "\\:")):\(action)"
    }

    private static func quoted(_ text: String) -> String { "'" + text.replacing("'", with: "'\\''") + "'" }
}
