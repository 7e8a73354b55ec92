//! Country codes: IIM requires three characters, whereas documents often have two.

/// The two-letter and three-letter codes of all countries in ISO 3166-1, and the customary code of Kosovo, which
/// has no ISO code.
const CODES: &str = "\
     ADAND AEARE AFAFG AGATG AIAIA ALALB AMARM AOAGO AQATA ARARG ASASM ATAUT AUAUS AWABW \
     AXALA AZAZE BABIH BBBRB BDBGD BEBEL BFBFA BGBGR BHBHR BIBDI BJBEN BLBLM BMBMU BNBRN \
     BOBOL BQBES BRBRA BSBHS BTBTN BVBVT BWBWA BYBLR BZBLZ CACAN CCCCK CDCOD CFCAF CGCOG \
     CHCHE CICIV CKCOK CLCHL CMCMR CNCHN COCOL CRCRI CUCUB CVCPV CWCUW CXCXR CYCYP CZCZE \
     DEDEU DJDJI DKDNK DMDMA DODOM DZDZA ECECU EEEST EGEGY EHESH ERERI ESESP ETETH FIFIN \
     FJFJI FKFLK FMFSM FOFRO FRFRA GAGAB GBGBR GDGRD GEGEO GFGUF GGGGY GHGHA GIGIB GLGRL \
     GMGMB GNGIN GPGLP GQGNQ GRGRC GSSGS GTGTM GUGUM GWGNB GYGUY HKHKG HMHMD HNHND HRHRV \
     HTHTI HUHUN IDIDN IEIRL ILISR IMIMN ININD IOIOT IQIRQ IRIRN ISISL ITITA JEJEY JMJAM \
     JOJOR JPJPN KEKEN KGKGZ KHKHM KIKIR KMCOM KNKNA KPPRK KRKOR KWKWT KYCYM KZKAZ LALAO \
     LBLBN LCLCA LILIE LKLKA LRLBR LSLSO LTLTU LULUX LVLVA LYLBY MAMAR MCMCO MDMDA MEMNE \
     MFMAF MGMDG MHMHL MKMKD MLMLI MMMMR MNMNG MOMAC MPMNP MQMTQ MRMRT MSMSR MTMLT MUMUS \
     MVMDV MWMWI MXMEX MYMYS MZMOZ NANAM NCNCL NENER NFNFK NGNGA NINIC NLNLD NONOR NPNPL \
     NRNRU NUNIU NZNZL OMOMN PAPAN PEPER PFPYF PGPNG PHPHL PKPAK PLPOL PMSPM PNPCN PRPRI \
     PSPSE PTPRT PWPLW PYPRY QAQAT REREU ROROU RSSRB RURUS RWRWA SASAU SBSLB SCSYC SDSDN \
     SESWE SGSGP SHSHN SISVN SJSJM SKSVK SLSLE SMSMR SNSEN SOSOM SRSUR SSSSD STSTP SVSLV \
     SXSXM SYSYR SZSWZ TCTCA TDTCD TFATF TGTGO THTHA TJTJK TKTKL TLTLS TMTKM TNTUN TOTON \
     TRTUR TTTTO TVTUV TWTWN TZTZA UAUKR UGUGA UMUMI USUSA UYURY UZUZB VAVAT VCVCT VEVEN \
     VGVGB VIVIR VNVNM VUVUT WFWLF WSWSM XKXKX YEYEM YTMYT ZAZAF ZMZMB ZWZWE";
/// Number of letters of the two-letter code, which precedes the three-letter code in each pair.
const SHORT: usize = 2;
/// Number of letters of the three-letter code.
const LONG: usize = 3;

/// Normalizes a country code of two or three characters to upper case: letters as in ISO 3166, and digits in codes of
/// other lists, which IPTC allows.
///
/// Returns `None` for other text and for a number alone. Does not check that the code is assigned to a country.
pub fn normalize_code(text: &str) -> Option<String> {
    let is_code = text.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && text.bytes().any(|byte| byte.is_ascii_alphabetic())
        && [SHORT, LONG].contains(&text.len());
    is_code.then(|| text.to_ascii_uppercase())
}

/// Converts a country code of two or three characters to three (ISO 3166-1 alpha-3).
///
/// Returns `None` for an unassigned code of two characters. A code of three characters is not checked.
pub fn alpha3_code(text: &str) -> Option<String> {
    let code = normalize_code(text)?;
    if code.len() == LONG {
        return Some(code);
    }
    let pair = CODES.split(' ').find(|pair| pair.starts_with(&code))?;
    pair.get(SHORT..).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_letters_become_three() {
        for (short, long) in [("SE", "SWE"), ("ad", "AND"), ("ZW", "ZWE"), ("XK", "XKX")] {
            assert_eq!(alpha3_code(short).as_deref(), Some(long));
        }
        assert_eq!(alpha3_code("nor").as_deref(), Some("NOR"));
        assert_eq!(alpha3_code("r23").as_deref(), Some("R23"));
        for none in ["", "S", "QQ", "Å", "SÅ", "SWED", "S E", "12", "123", "S2"] {
            assert_eq!(alpha3_code(none), None, "{none}");
        }
    }

    #[test]
    fn the_list_is_of_pairs_and_in_order() {
        let pairs: Vec<&str> = CODES.split(' ').collect();
        assert_eq!(pairs.len(), 250);
        assert!(pairs.iter().all(|pair| pair.len() == SHORT + LONG));
        assert!(pairs.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
